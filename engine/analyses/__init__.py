"""What is known about a function, in packages by the kind of question.

Analyses take a module and return facts; they change no instruction. What they find for one derivative is collected in
`activity/facts.py`.
"""
