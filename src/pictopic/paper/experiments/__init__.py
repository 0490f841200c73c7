"""The paper's experiments: its tables and figures, worked out again by ``pictopic reproduce``.

Each experiment is a module with a function ``run(data, run)`` that returns `Results`.
"""
