"""What is: one read of the machine becomes typed actual state. Never changes anything."""
