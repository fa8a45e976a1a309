"""The tables of papers, computed anew by ``groundfault lab study`` beside those the papers print.

A package of its own: it imports groundfault, and nothing in groundfault imports it. The command
finds each study as an entry point of the group ``groundfault.studies``, and so it finds those of
other packages. A study is a function of ``progress`` and of the options it takes, which returns a
`groundfault_studies.tables.PaperStudy`.
"""
