"""What should be: typed desired state. Pure: imports neither pyinfra nor the other rooms."""
