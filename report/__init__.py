# SPDX-License-Identifier: Apache-2.0
"""Views of measurements and models: from data to texts, JSON and HTML, and the file formats of other tools.

text          numbers as text
views         data types of views; tree_views, model_views, source_listing, behaviour and others create them
measured_run  the attributes of a run that views use
json_views    the JSON of the command line
terminal      renderables for rich
html          the report in one file
formats       Score-P filter files, experiments of other tools
"""
