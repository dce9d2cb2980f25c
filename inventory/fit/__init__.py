"""Know before touching: will this model start on these GPUs with these flags, and how well?

Pure functions. :func:`inventory.fit.fit.fit` is the whole answer; the modules below it each
hold one part: what a model is (architecture), what is legal (legality), what it costs
(weights, kv, overhead, memory), what follows (derive, load_time) and how it is said (explain).
"""
