//! What becomes of memory that was freed. The one test of its process: others would allocate meanwhile.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

use pie_host::keep_little_free;

fn rss_bytes() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let n_pages = pages.split(' ').nth(1).and_then(|n| n.parse().ok());
    n_pages.unwrap_or(0usize) * 4096
}

/// Pieces of growing sizes, as large messages are: after them, smaller ones are given back too.
#[test]
fn what_large_pieces_leave_free_is_given_back() {
    keep_little_free();
    let before = rss_bytes();
    for n_mib in [2, 8, 24] {
        drop(vec![1u8; n_mib << 20]);
    }
    let pieces: Vec<_> = (0..64).map(|_| vec![1u8; 1 << 20]).collect();
    assert!(rss_bytes() > before + (48 << 20));
    drop(pieces);
    assert!(rss_bytes() < before + (16 << 20));
}
