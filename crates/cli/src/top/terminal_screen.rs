//! Draws a table on a terminal of any size.

use super::keys::View;
use super::plain::{headline, summary};
use super::rows::Rows;
use super::table::{Cell, Kind, lines};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Row, Table};

/// Width of a column with figures, and minimum width of the first column.
const FIGURE_WIDTH: u16 = 9;
const NAME_WIDTH_MIN: u16 = 16;

/// Draws the screen. `trouble` is the reason why the figures are old.
pub(super) fn draw(frame: &mut Frame, rows: &Rows, view: &mut View, trouble: Option<&str>) {
    let parts =
        [Constraint::Length(2), Constraint::Length(1), Constraint::Min(1), Constraint::Length(1)];
    let [head, tabs, table, foot] = Layout::vertical(parts).areas(frame.area());
    frame.render_widget(Paragraph::new(vec![verdict(rows, trouble), summary(rows).into()]), head);
    frame.render_widget(tabs_line(view), tabs);
    draw_table(frame, table, rows, view);
    let keys = "q end  Tab/1-3 table  ←/→ sort  r reverse  ↑/↓ scroll  p pause";
    let style = Style::new().add_modifier(Modifier::DIM);
    frame.render_widget(Line::styled(keys, style), foot);
}

fn verdict(rows: &Rows, trouble: Option<&str>) -> Line<'static> {
    let (text, color) = match trouble {
        Some(trouble) => (format!("no update: {trouble}"), Color::Red),
        None if rows.troubles.is_empty() => (headline(rows), Color::Green),
        None if rows.healthy => (headline(rows), Color::Yellow),
        None => (headline(rows), Color::Red),
    };
    Line::styled(text, Style::new().fg(color).add_modifier(Modifier::BOLD))
}

fn tabs_line(view: &View) -> Line<'static> {
    let tab = |kind: Kind| {
        let is_shown = kind == view.kind;
        let style =
            if is_shown { Style::new().add_modifier(Modifier::REVERSED) } else { Style::new() };
        [Span::styled(format!(" {} {} ", kind as usize + 1, kind.name()), style), Span::raw(" ")]
    };
    let mut spans: Vec<_> = Kind::ALL.into_iter().flat_map(tab).collect();
    if view.is_paused {
        spans.push(Span::styled("paused", Style::new().fg(Color::Yellow)));
    }
    Line::from(spans)
}

/// Returns the number of columns that fit, from the left.
fn fitting(kind: Kind, width: u16) -> usize {
    let figures = width.saturating_sub(NAME_WIDTH_MIN) / (FIGURE_WIDTH + 1);
    kind.columns().len().min(usize::from(figures) + 1)
}

fn draw_table(frame: &mut Frame, area: Rect, rows: &Rows, view: &mut View) {
    let all = lines(rows, view.kind, view.sort(), view.is_reversed);
    if all.is_empty() {
        let why = match view.kind {
            Kind::Workers => "There are no workers.",
            Kind::Queues => "There are no queues.",
            _ if !rows.measured => {
                "Requests are not measured: set `admin`, `insight.store` or an exporter of \
                 `insight`."
            }
            Kind::Routes => "No requests yet.",
            Kind::Waits => "No waits of PHP yet.",
        };
        frame.render_widget(Paragraph::new(why), area);
        return;
    }
    let room = usize::from(area.height.saturating_sub(1)).max(1);
    view.first = view.first.min(all.len().saturating_sub(room));
    let columns = fitting(view.kind, area.width);
    let heading = |(at, name): (usize, &&str)| {
        let mark =
            if at == view.sort() { if view.is_reversed { "▲" } else { "▼" } } else { "" };
        aligned(at, &format!("{name}{mark}"))
    };
    let style = Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED);
    let header = Row::new(view.kind.columns().iter().enumerate().take(columns).map(heading));
    let shown = all.iter().skip(view.first).take(room).map(|line| {
        let cells = line.iter().enumerate().take(columns);
        Row::new(cells.map(|(at, cell)| match cell {
            Cell::Text(_) => Line::from(cell.show()),
            Cell::Number(..) => aligned(at, &cell.show()),
        }))
    });
    let widths = (0..columns).map(|at| match at {
        0 => Constraint::Min(NAME_WIDTH_MIN),
        _ => Constraint::Length(FIGURE_WIDTH),
    });
    frame.render_widget(Table::new(shown, widths).header(header.style(style)), area);
}

fn aligned(at: usize, text: &str) -> Line<'static> {
    let line = Line::from(text.to_owned());
    if at == 0 { line } else { line.right_aligned() }
}

#[cfg(test)]
mod tests {
    use super::draw;
    use crate::top::keys::View;
    use crate::top::rows::{RouteRow, Rows};
    use crate::top::table::Kind;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn screen(width: u16, height: u16, rows: &Rows, view: &mut View) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, rows, view, None)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn screen_fits_terminal_of_any_size() {
        let route = |n| RouteRow { route: format!("route {n:03}"), ..RouteRow::default() };
        let rows =
            Rows { measured: true, routes: (0..300).map(route).collect(), ..Rows::default() };
        for (width, height) in [(1, 1), (10, 3), (20, 6), (80, 24), (200, 60)] {
            for kind in Kind::ALL {
                screen(width, height, &rows, &mut View::new(kind));
            }
        }
        let mut view = View::new(Kind::Routes);
        view.first = usize::MAX;
        let shown = screen(120, 24, &rows, &mut view);
        assert!(shown.contains("route 299") && shown.contains("P99 MS"), "{shown}");
        assert!(!shown.contains("route 000"), "{shown}");
        let narrow = screen(40, 24, &rows, &mut View::new(Kind::Routes));
        assert!(narrow.contains("route 000") && !narrow.contains("P99 MS"), "{narrow}");
    }

    #[test]
    fn screen_shows_missing_data() {
        let shown = screen(100, 10, &Rows::default(), &mut View::new(Kind::Routes));
        assert!(shown.contains("Requests are not measured"), "{shown}");
    }
}
