//! A table with aligned columns, for people. Programs use `--json`.

use crate::output::printable;

/// Rows below a heading; every row has as many cells as the heading.
pub struct Table<const COLUMNS: usize> {
    rows: Vec<[String; COLUMNS]>,
}

impl<const COLUMNS: usize> Table<COLUMNS> {
    /// Makes a table with this heading and no rows.
    pub fn new(heading: [&str; COLUMNS]) -> Self {
        Self { rows: vec![heading.map(str::to_owned)] }
    }

    /// Adds a row. Control characters are escaped, since a cell may come from inside a sandbox.
    pub fn row(&mut self, cells: [String; COLUMNS]) {
        self.rows.push(cells.map(|cell| printable(&cell)));
    }

    /// Renders the table with two spaces between columns, and none at a line's end.
    pub fn render(&self) -> String {
        let width =
            |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: [usize; COLUMNS] = std::array::from_fn(width);
        let mut text = String::new();
        for row in &self.rows {
            let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
            text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell_and_lines_have_no_trailing_space() {
        let mut table = Table::new(["NAME", "AGE"]);
        table.row(["builder".to_owned(), "3s".to_owned()]);
        table.row(["ä".to_owned(), "12m".to_owned()]);
        assert_eq!(table.render(), "NAME     AGE\nbuilder  3s\nä        12m\n");
    }
}
