"""One chat with a service that is ready, and what is odd about its answer."""
