//! Links in an archive.

/// Tells whether a symbolic link in a directory `depth` below the root stays within the tree,
/// whatever other links the archive has. Only `..` at the beginning counts as safe, because
/// unpacking follows no link on the way to the directory. After a name, which may itself be a link
/// that climbs, only the kernel knows where `..` leads.
pub fn link_stays_inside(target: &[u8], depth: usize) -> bool {
    if target.is_empty() || target.starts_with(b"/") {
        return false;
    }
    let segments: Vec<&[u8]> =
        target.split(|byte| *byte == b'/').filter(|part| !matches!(*part, b"" | b".")).collect();
    let climbs = segments.iter().take_while(|segment| **segment == b"..").count();
    climbs <= depth && !segments[climbs..].contains(&&b".."[..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f4_a_link_stays_inside_only_if_its_dots_come_first_and_do_not_reach_above_the_root() {
        for (target, depth) in [("a", 0), ("./a/b", 0), ("../a", 1), ("../../a/b", 2), ("..", 1), ("a..b", 0)]
        {
            assert!(link_stays_inside(target.as_bytes(), depth), "{target}");
        }
        for (target, depth) in
            [("/etc", 3), ("..", 0), ("../../a", 1), ("a/..", 1), ("a/../../b", 2), ("", 0)]
        {
            assert!(!link_stays_inside(target.as_bytes(), depth), "{target}");
        }
    }
}
