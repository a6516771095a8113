"""The certificate authority: what serves TLS, and knows nothing of webhooks.

    authority   issue a CA and leaves, say what is wrong with a pair, and when to renew it
    rotation    which CA signs, which ones are trusted, and what comes next, as values
    store       keep a pair on disk so that no reader ever sees half of one

Nothing here reads a clock: the time of issue and of judgement is an argument.
"""
