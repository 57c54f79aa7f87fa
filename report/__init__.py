# SPDX-License-Identifier: Apache-2.0
"""Show measurements and models as text, JSON and HTML, and read and write the file formats of other tools.

A view is the content of one output, independent of its format.

text          numbers as text
views         data types of views; tree_views, model_views, source_listing, behaviour and others create the views
measured_run  the attributes of a run that views use
json_views    the JSON documents of the command line
terminal      output in the terminal, by the library rich
html          the report, a page of HTML in one file
formats       filter files of Score-P, experiments and profiles of other tools
"""
