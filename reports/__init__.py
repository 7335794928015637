"""Result rows to pages: a frozen model, then text, HTML, JSON, CSV or Markdown. No Spark here."""
