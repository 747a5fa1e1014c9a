//! A recording at every scale: what a chart of any width needs, without reading it all.
