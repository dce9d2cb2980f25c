"""The shell that reads a box. Read-only, POSIX sh, always exits 0."""
