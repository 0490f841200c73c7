"""The addresses of the API, a module per resource.

`dependencies` has what they share.
"""
