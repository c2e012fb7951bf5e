//! Native provider.
