"""What irgrad knows about a derivative before it runs: the function `explain`, its data, the text and the page of them.

`derivation` analyses and plans, `activity_facts`, `loop_facts`, `calls`, `lane_facts` and `passes` read facts off,
`facts` holds them, `text` and `html` show them. Nothing here changes a derivative.
"""
