"""The rules of a stream job's life. Pure: what is known comes in, what to do comes out.

    observe (I/O) -> validate -> plan -> build -> apply (I/O) -> status (I/O)

Nothing here reads a clock, a file or a socket; an import contract in pyproject.toml keeps it so.
"""
