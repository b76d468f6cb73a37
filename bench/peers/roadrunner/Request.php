<?php

declare(strict_types=1);

namespace Samovar\Bench\RoadRunner;

/** A request as RoadRunner sends it. */
final class Request
{
    /**
     * @param string $uri with scheme and host
     * @param array<string, list<string>> $headers
     * @param array<string, string> $cookies
     */
    public function __construct(
        public readonly string $method,
        public readonly string $uri,
        public readonly string $protocol,
        public readonly string $remoteAddress,
        public readonly array $headers,
        public readonly array $cookies,
        public readonly string $query,
        public readonly string $body,
    ) {
    }

    /** A header's values, joined. Go writes names as "Content-Type". */
    public function header(string $name): ?string
    {
        $values = $this->headers[ucwords($name, '-')] ?? null;

        return $values === null ? null : implode(', ', $values);
    }

    /**
     * $_SERVER, filled as by a server.
     *
     * @return array<string, string>
     */
    public function server(): array
    {
        $parts = parse_url($this->uri);
        $server = [
            'REQUEST_METHOD' => $this->method,
            'REQUEST_URI' => ($parts['path'] ?? '/') . ($this->query === '' ? '' : "?$this->query"),
            'QUERY_STRING' => $this->query,
            'SERVER_PROTOCOL' => $this->protocol,
            'SERVER_NAME' => $parts['host'] ?? '127.0.0.1',
            'SERVER_PORT' => (string) ($parts['port'] ?? 80),
            'REMOTE_ADDR' => $this->remoteAddress,
            'SCRIPT_NAME' => '/index.php',
            'SCRIPT_FILENAME' => '/index.php',
        ];
        foreach ($this->headers as $name => $values) {
            $key = strtoupper(strtr($name, '-', '_'));
            $key = in_array($key, ['CONTENT_TYPE', 'CONTENT_LENGTH'], true) ? $key : "HTTP_$key";
            $server[$key] = implode(', ', $values);
        }

        return $server;
    }
}
