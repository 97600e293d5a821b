"""The keeper: store work by the job's own pods, when no driver lives. It speaks by its last words only."""
