"""Sphinx's settings for the slides: tools/build_deck.py."""

project = "asyncgpu_tutor"
extensions = ["myst_parser", "sphinx_revealjs"]
root_doc = "index"

revealjs_html_theme = "revealjs-simple"
revealjs_style_theme = "white"
revealjs_static_path = ["static"]
revealjs_css_files = ["deck.css"]
revealjs_script_conf = {"hash": True, "width": 1280, "height": 720, "margin": 0.04}
revealjs_script_plugins = [{"name": "RevealNotes", "src": "revealjs/plugin/notes/notes.js"}]
