"""The plots of the HTML report: pure functions from results to plotly figures, one file a kind of plot."""
