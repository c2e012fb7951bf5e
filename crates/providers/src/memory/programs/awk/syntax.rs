//! The syntax tree of an `awk` program, with resolved names.

use std::rc::Rc;

use super::pattern::AwkPattern;
use super::text::AwkText;

/// The built-in variables of `awk`. Their position here is their number.
pub(super) const KNOWN_VARIABLES: [&str; 16] = [
    "NF", "NR", "FNR", "FS", "OFS", "ORS", "RS", "SUBSEP", "CONVFMT", "OFMT", "FILENAME", "RSTART",
    "RLENGTH", "ARGC", "ARGV", "ENVIRON",
];
pub(super) const NF: usize = 0;
pub(super) const NR: usize = 1;
pub(super) const FNR: usize = 2;
pub(super) const FS: usize = 3;
pub(super) const OFS: usize = 4;
pub(super) const ORS: usize = 5;
pub(super) const RS: usize = 6;
pub(super) const SUBSEP: usize = 7;
pub(super) const CONVFMT: usize = 8;
pub(super) const OFMT: usize = 9;
pub(super) const FILENAME: usize = 10;
pub(super) const RSTART: usize = 11;
pub(super) const RLENGTH: usize = 12;
pub(super) const ARGC: usize = 13;
pub(super) const ARGV: usize = 14;
pub(super) const ENVIRON: usize = 15;

/// A variable of the program, or of the function that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum VariableRef {
    Global(usize),
    Local(usize),
}

/// An expression that can be assigned to.
pub(super) enum AwkTarget {
    Variable(VariableRef),
    Element(VariableRef, Vec<AwkExpr>),
    Field(Box<AwkExpr>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Power,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Less,
    LessOrEqual,
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
}

/// The built-in functions of `awk`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AwkFunction {
    Atan2,
    Close,
    Cos,
    Exp,
    Fflush,
    Gsub,
    Index,
    Int,
    Length,
    Log,
    Match,
    Mktime,
    Rand,
    Sin,
    Split,
    Sprintf,
    Sqrt,
    Srand,
    Strftime,
    Sub,
    Substr,
    System,
    Systime,
    Tolower,
    Toupper,
}

/// The built-in functions by name, with the fewest and the most arguments.
pub(super) const FUNCTIONS: [(&str, AwkFunction, usize, usize); 25] = [
    ("atan2", AwkFunction::Atan2, 2, 2),
    ("close", AwkFunction::Close, 1, 1),
    ("cos", AwkFunction::Cos, 1, 1),
    ("exp", AwkFunction::Exp, 1, 1),
    ("fflush", AwkFunction::Fflush, 0, 1),
    ("gsub", AwkFunction::Gsub, 2, 3),
    ("index", AwkFunction::Index, 2, 2),
    ("int", AwkFunction::Int, 1, 1),
    ("length", AwkFunction::Length, 0, 1),
    ("log", AwkFunction::Log, 1, 1),
    ("match", AwkFunction::Match, 2, 2),
    ("mktime", AwkFunction::Mktime, 1, 1),
    ("rand", AwkFunction::Rand, 0, 0),
    ("sin", AwkFunction::Sin, 1, 1),
    ("split", AwkFunction::Split, 2, 3),
    ("sprintf", AwkFunction::Sprintf, 1, 255),
    ("sqrt", AwkFunction::Sqrt, 1, 1),
    ("srand", AwkFunction::Srand, 0, 1),
    ("strftime", AwkFunction::Strftime, 0, 3),
    ("sub", AwkFunction::Sub, 2, 3),
    ("substr", AwkFunction::Substr, 2, 3),
    ("system", AwkFunction::System, 1, 1),
    ("systime", AwkFunction::Systime, 0, 0),
    ("tolower", AwkFunction::Tolower, 1, 1),
    ("toupper", AwkFunction::Toupper, 1, 1),
];

/// An argument of a call to a function of the program.
pub(super) enum CallArgument {
    /// A single name, which may be an array.
    Name(VariableRef),
    Value(AwkExpr),
}

/// The source of a line that `getline` reads.
pub(super) enum LineSource {
    Input,
    File(Box<AwkExpr>),
    Command(Box<AwkExpr>),
}

pub(super) enum AwkExpr {
    Number(f64),
    Text(AwkText),
    Pattern(Rc<AwkPattern>),
    Get(AwkTarget),
    Assign(Box<AwkTarget>, Box<AwkExpr>),
    Change(Arithmetic, Box<AwkTarget>, Box<AwkExpr>),
    /// `++` or `--`. After the operand, the value is the one from before the change.
    Step {
        target: Box<AwkTarget>,
        by: f64,
        is_behind: bool,
    },
    Calculate(Arithmetic, Box<AwkExpr>, Box<AwkExpr>),
    Negate(Box<AwkExpr>),
    AsNumber(Box<AwkExpr>),
    Not(Box<AwkExpr>),
    And(Box<AwkExpr>, Box<AwkExpr>),
    Or(Box<AwkExpr>, Box<AwkExpr>),
    Choose(Box<AwkExpr>, Box<AwkExpr>, Box<AwkExpr>),
    Compare(Comparison, Box<AwkExpr>, Box<AwkExpr>),
    Join(Box<AwkExpr>, Box<AwkExpr>),
    Matches {
        text: Box<AwkExpr>,
        pattern: Box<AwkExpr>,
        is_negated: bool,
    },
    Has(VariableRef, Vec<AwkExpr>),
    /// The length of a variable, which may be an array.
    LengthOf(VariableRef),
    Call(usize, Vec<CallArgument>),
    Function(AwkFunction, Vec<AwkExpr>),
    Split(Box<AwkExpr>, VariableRef, Option<Box<AwkExpr>>),
    Substitute {
        is_global: bool,
        pattern: Box<AwkExpr>,
        replacement: Box<AwkExpr>,
        target: Box<AwkTarget>,
    },
    Getline(LineSource, Option<Box<AwkTarget>>),
    Group(Box<AwkExpr>),
    /// The expressions of `(a, b)`, before their use is known.
    List(Vec<AwkExpr>),
}

/// The kind of redirection of `print`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum OutputKind {
    File,
    Appended,
    Command,
}

pub(super) enum AwkStatement {
    Expression(AwkExpr),
    Print { args: Vec<AwkExpr>, is_formatted: bool, output: Option<(OutputKind, AwkExpr)> },
    If(AwkExpr, Vec<AwkStatement>, Vec<AwkStatement>),
    While(AwkExpr, Vec<AwkStatement>),
    DoWhile(Vec<AwkStatement>, AwkExpr),
    For { first: Vec<AwkStatement>, test: Option<AwkExpr>, step: Vec<AwkStatement>, body: Vec<AwkStatement> },
    ForKeys(AwkTarget, VariableRef, Vec<AwkStatement>),
    Delete(VariableRef, Option<Vec<AwkExpr>>),
    Break,
    Continue,
    Next,
    Exit(Option<AwkExpr>),
    Return(Option<AwkExpr>),
}

/// The condition of a rule.
pub(super) enum RulePattern {
    Always,
    If(AwkExpr),
    /// A range, with its number.
    Range(usize, AwkExpr, AwkExpr),
}

pub(super) struct AwkRule {
    pub pattern: RulePattern,
    /// The statements; `None`: the rule prints the record.
    pub body: Option<Vec<AwkStatement>>,
}

/// A function of the program.
#[derive(Default)]
pub(super) struct DefinedFunction {
    pub body: Vec<AwkStatement>,
    /// The parameters, each `true` if it is an array.
    pub parameters: Vec<bool>,
}

/// A parsed program.
#[derive(Default)]
pub(super) struct AwkProgram {
    pub begin: Vec<Vec<AwkStatement>>,
    pub rules: Vec<AwkRule>,
    pub end: Vec<Vec<AwkStatement>>,
    pub functions: Vec<DefinedFunction>,
    /// The names of the variables, each with `true` if it is an array.
    pub globals: Vec<(String, bool)>,
    pub ranges: usize,
}
