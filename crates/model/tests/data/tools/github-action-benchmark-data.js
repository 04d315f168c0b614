window.BENCHMARK_DATA = {
  "lastUpdate": 1794877200123,
  "repoUrl": "https://example.org/repo",
  "entries": {
    "Benchmark": [
      {
        "commit": {
          "author": {
            "email": "ada@example.org",
            "name": "Ada",
            "username": "ada"
          },
          "committer": {
            "email": "ada@example.org",
            "name": "Ada",
            "username": "ada"
          },
          "distinct": true,
          "id": "a1",
          "message": "change",
          "timestamp": "2026-11-16T10:00:00Z",
          "tree_id": "0",
          "url": "https://example.org/commit/a1"
        },
        "date": 1794873600000,
        "tool": "customSmallerIsBetter",
        "benches": [
          {
            "name": "parse",
            "value": 40.0,
            "unit": "us/iter"
          }
        ]
      },
      {
        "commit": {
          "author": {
            "email": "ada@example.org",
            "name": "Ada",
            "username": "ada"
          },
          "committer": {
            "email": "ada@example.org",
            "name": "Ada",
            "username": "ada"
          },
          "distinct": true,
          "id": "b2",
          "message": "change",
          "timestamp": "2026-11-16T10:00:00Z",
          "tree_id": "0",
          "url": "https://example.org/commit/b2"
        },
        "date": 1794877200000,
        "tool": "customSmallerIsBetter",
        "benches": [
          {
            "name": "parse",
            "value": 42.0,
            "unit": "us/iter",
            "range": "\u00b1 0.4"
          }
        ]
      }
    ]
  }
}