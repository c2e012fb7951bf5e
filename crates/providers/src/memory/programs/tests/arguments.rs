//! The arguments of a program are as long as Linux lets them be.

use eyot::Outcome;

use super::run_all;

#[tokio::test]
async fn an_argument_that_is_too_long_for_linux_is_too_long_here() {
    let big = "big() { head -c $1 /dev/zero | tr '\\0' x; };";
    let [fits, too_long, reworded] = run_all([
        format!("{big} tr \"$(big 131071)\" y </dev/null"),
        format!("{big} tr \"$(big 131072)\" y </dev/null"),
        format!("{big} find . -name \"$(big 131072)\""),
    ])
    .await;
    assert_eq!(fits, (Outcome::Exited(0), String::new(), String::new()));
    let refused =
        |name| (Outcome::Exited(126), String::new(), format!("bash: {name}: Argument list too long\n"));
    assert_eq!(too_long, refused("tr"));
    assert_eq!(reworded, refused("find"));
}

#[tokio::test]
async fn arguments_that_are_too_many_for_linux_are_too_many_here() {
    let many = "big=$(head -c 130000 /dev/zero | tr '\\0' x); set -- $(printf '%s ' {1..20})";
    let [program, builtin] = run_all([
        format!("{many}; paste \"${{@/#*/$big}}\""),
        format!("{many}; echo \"${{@/#*/$big}}\" | wc -c"),
    ])
    .await;
    let refused = "bash: paste: Argument list too long\n".to_owned();
    assert_eq!(program, (Outcome::Exited(126), String::new(), refused));
    assert_eq!(builtin, (Outcome::Exited(0), "2600020\n".to_owned(), String::new()));
}
