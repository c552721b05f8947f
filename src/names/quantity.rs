//! How Kubernetes writes quantities, such as `500Gi` or `2900m`.

/// The suffixes of Kubernetes quantities with their factors, from its resource model: binary ones, then decimal ones, then
/// none. A longer one comes before one that it ends in.
pub const QUANTITY_SUFFIXES: [(&str, f64); 14] = [
    ("Ki", 1024.0),
    ("Mi", 1_048_576.0),
    ("Gi", 1_073_741_824.0),
    ("Ti", 1_099_511_627_776.0),
    ("Pi", 1_125_899_906_842_624.0),
    ("Ei", 1_152_921_504_606_846_976.0),
    ("m", 1e-3),
    ("k", 1e3),
    ("M", 1e6),
    ("G", 1e9),
    ("T", 1e12),
    ("P", 1e15),
    ("E", 1e18),
    ("", 1.0),
];
