"""The substrate of a cluster: runs are pods. A thin client, what it reads, and what it does."""
