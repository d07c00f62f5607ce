"""`spark-submit dq_submit.py check …`: the command line in a file, which is what spark-submit wants.

Its folder must not be looked in for modules: it holds `dq.cli`'s own, whose names are those of others.
"""

if __name__ == "__main__":
    from dq.cli.main import main

    main()
