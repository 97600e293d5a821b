"""Looks for work while a job sleeps: in the job's own image, under its rights. It writes nothing."""
