//! A flame graph as JSON for the HTTP API: nodes are arrays of numbers, because a graph has up to
//! [`NODES_MAX`](super::NODES_MAX) of them.

use serde_json::{Value, json};

use super::FlameGraph;

impl FlameGraph {
    /// The response format of the server: see `flame` in `docs/api.md`.
    pub fn to_json(&self) -> Value {
        let frames = self.frames.iter().map(|frame| {
            json!({
                "name": frame.name,
                "module": frame.module,
                "kind": frame.kind.name(),
            })
        });
        let nodes = self.nodes.iter().map(|node| {
            let mut row = vec![
                json!(node.parent),
                json!(node.frame),
                json!(node.self_ns),
                json!(node.total_ns),
            ];
            if self.is_compared {
                row.extend([json!(node.base_self_ns), json!(node.base_total_ns)]);
            }
            Value::Array(row)
        });
        let mut answer = json!({
            "unit": "ns",
            "total": self.total_ns(),
            "samples": self.samples,
            "pruned": self.pruned_ns,
            "frames": frames.collect::<Vec<_>>(),
            "nodes": nodes.collect::<Vec<_>>(),
            "caveats": self.about.caveats,
            "lost_ranges": self.about.losses.len(),
        });
        if self.is_compared {
            answer["base_total"] = json!(self.base_total_ns());
        }
        answer
    }
}
