"""Pure readers: sections of the probe's output become typed state. No pyinfra in here.

Nothing that a box prints raises: what cannot be read is Unknown, with the box's word for it.
"""
