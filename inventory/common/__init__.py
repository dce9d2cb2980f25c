"""What controller and box both know, said once. Standard library only.

The controller imports it; the box gets it as it is, under this very name, with the programs of
``operations/remote/``. It imports nothing of boxwright but itself.
"""
