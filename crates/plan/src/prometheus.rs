//! Response of a Prometheus server to `query_range`.

use crate::problem::Problem;
use serde::Deserialize;

/// Maximum number of points of one response.
pub const POINTS_MAX: usize = 11_000;

#[derive(Deserialize)]
struct Response {
    status: String,
    #[serde(default)]
    error: String,
    data: Option<Data>,
}

#[derive(Deserialize)]
struct Data {
    #[serde(rename = "resultType")]
    kind: String,
    #[serde(default)]
    result: Vec<Series>,
}

#[derive(Deserialize)]
struct Series {
    #[serde(default)]
    values: Vec<(f64, String)>,
}

/// Returns the points of the only series, without those that are no numbers.
pub fn points(body: &str, query: &str) -> Result<Vec<(i64, f64)>, Problem> {
    let response: Response = serde_json::from_str(body).map_err(|_| {
        let hint = "give the address of a Prometheus server, such as http://127.0.0.1:9090";
        Problem::new("the response is not that of a Prometheus server", hint)
    })?;
    let hint = || format!("correct the query with --query: {query}");
    if response.status != "success" {
        let why = if response.error.is_empty() { "no reason given" } else { &response.error };
        return Err(Problem::new(format!("Prometheus refuses the query: {why}"), hint()));
    }
    let data = response.data.filter(|data| data.kind == "matrix");
    let data = data.ok_or_else(|| Problem::new("Prometheus returned no range", hint()))?;
    if data.result.len() > 1 {
        let message = format!("the query returns {} series instead of one", data.result.len());
        return Err(Problem::new(message, format!("use sum(…) in the query: {query}")));
    }
    let values = data.result.into_iter().flat_map(|series| series.values).take(POINTS_MAX);
    let numbers = values.filter_map(|(at, text)| {
        let value = text.parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0)?;
        Some((at as i64, value))
    });
    Ok(numbers.collect())
}

#[cfg(test)]
mod tests {
    use super::points;

    #[test]
    fn points_without_nan_are_returned() {
        let body = r#"{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},
            "values":[[300,"1.5"],[600.5,"NaN"],[900,"+Inf"],[1200,"2"]]}]}}"#;
        assert_eq!(points(body, "q").expect("points"), [(300, 1.5), (1200, 2.0)]);
        let empty = r#"{"status":"success","data":{"resultType":"matrix","result":[]}}"#;
        assert_eq!(points(empty, "q").expect("none"), []);
    }

    #[test]
    fn other_responses_are_errors_with_the_query() {
        for (body, expected) in [
            ("<html>", "the response is not that of a Prometheus server"),
            (r#"{"status":"error","error":"parse error"}"#, "refuses the query: parse error"),
            (
                r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#,
                "returned no range",
            ),
            (
                r#"{"status":"success","data":{"resultType":"matrix","result":[{},{}]}}"#,
                "returns 2 series instead of one\nhint: use sum(…) in the query: up",
            ),
        ] {
            let error = points(body, "up").expect_err(body).to_string();
            assert!(error.contains(expected) && error.contains("\nhint: "), "{error}");
        }
    }
}
