"""Text of strangers in the languages of other programs: one escaping function per target.

Contracts and data become parts of what others evaluate: SQL, Jinja, Python, a shell's line, HTML. Whoever
writes such a text calls the function of its target, and nothing else. `targets` is the table of them. What a
target cannot hold as text is refused.
"""
