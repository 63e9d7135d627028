"""The server: routes, access, the queue of runs. It computes nothing itself."""
