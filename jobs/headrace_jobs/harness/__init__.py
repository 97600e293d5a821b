"""The driver process of a job: session, queries, agent, drain. See docs/concepts/harness.md."""
