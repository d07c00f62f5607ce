"""Sources of answers: each metric is answered by the first source that can, and Spark scans for the
others.
"""
