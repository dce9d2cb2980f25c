"""Published starts, and how well the fit predicts them.

- cases: a report in JSON becomes the inputs of the fit
- classes: which rule names which published failure
- score: one row a case, and the shares that count
- table: docs/fit.md
"""
