"""Views of measurements and models: terminal, HTML, and the file formats of other tools.

formats   Score-P filter files
terminal  renderables for rich, and the JSON views of the command line
html      the report in one file
"""
