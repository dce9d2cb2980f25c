"""What ran, and why one start took longer than another: recorded starts compared in measured parts.

Pure functions. A record becomes figures (``measured``), the phases of two starts are laid side by
side so that their differences add up (``parts``), and put into words (``words``). ``comparison``
picks which starts to compare, and does it; ``render`` prints.
"""
