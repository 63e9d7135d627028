"""Speed, memory and accuracy, each as a ratio to a peer in the same run."""
