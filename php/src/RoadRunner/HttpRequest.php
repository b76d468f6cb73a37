<?php

declare(strict_types=1);

namespace Samovar\Runtime\RoadRunner;

/** Spiral\RoadRunner\Http\Request: the client's request as plain values. */
final class HttpRequest
{
    /**
     * @param string $protocol such as "HTTP/1.1"
     * @param string $uri with scheme and host
     * @param array<string, list<string>> $headers
     * @param array<array-key, mixed> $cookies
     * @param array<array-key, mixed> $uploads a tree of arrays with name, error, tmpName, size,
     * mime
     * @param array<string, mixed> $attributes
     * @param array<array-key, mixed> $query
     * @param bool $parsed whether the body was a form, with its fields in $form
     * @param array<array-key, mixed> $form
     */
    public function __construct(
        public readonly string $remoteAddr = '127.0.0.1',
        public readonly string $protocol = 'HTTP/1.0',
        public readonly string $method = 'GET',
        public readonly string $uri = 'http://localhost',
        public readonly array $headers = [],
        public readonly array $cookies = [],
        public readonly array $uploads = [],
        public readonly array $attributes = [],
        public readonly array $query = [],
        public readonly string $body = '',
        public readonly bool $parsed = false,
        private array $form = [],
    ) {
    }

    /** Creates the request from the superglobals. */
    public static function received(): self
    {
        $type = strtolower(trim(explode(';', $_SERVER['CONTENT_TYPE'] ?? '')[0]));
        $isForm = \in_array($type, ['application/x-www-form-urlencoded', 'multipart/form-data'], true);
        $scheme = ($_SERVER['HTTPS'] ?? 'off') === 'off' ? 'http' : 'https';
        $host = $_SERVER['HTTP_HOST'] ?? $_SERVER['SERVER_NAME'] ?? 'localhost';

        return new self(
            $_SERVER['REMOTE_ADDR'] ?? '',
            $_SERVER['SERVER_PROTOCOL'] ?? 'HTTP/1.1',
            $_SERVER['REQUEST_METHOD'] ?? 'GET',
            "$scheme://$host" . ($_SERVER['REQUEST_URI'] ?? '/'),
            array_map(static fn (string $value): array => [$value], array_filter(
                apache_request_headers(),
                // These two headers are always present, and may be empty.
                static fn (string $value): bool => $value !== '',
            )),
            $_COOKIE,
            array_map(self::upload(...), $_FILES),
            [],
            $_GET,
            (string) file_get_contents('php://input'),
            $isForm && $_SERVER['REQUEST_METHOD'] === 'POST',
            $_POST,
        );
    }

    public function getRemoteAddr(): ?string
    {
        return $this->remoteAddr;
    }

    /** @return array<array-key, mixed>|null null: the body was no form */
    public function getParsedBody(): ?array
    {
        return $this->parsed ? $this->form : null;
    }

    /**
     * PHP lists the names of all files of a field, then their types. The result has one entry per
     * file.
     *
     * @param array<string, mixed> $file
     *
     * @return array<array-key, mixed>
     */
    private static function upload(array $file): array
    {
        if (!\is_array($file['error'])) {
            return [
                'name' => $file['name'],
                'error' => $file['error'],
                'tmpName' => $file['tmp_name'],
                'size' => $file['size'],
                'mime' => $file['type'],
            ];
        }
        $files = [];
        foreach (array_keys($file['error']) as $key) {
            $one = static fn (string $what): mixed => $file[$what][$key];
            $parts = ['name', 'error', 'tmp_name', 'size', 'type'];
            $files[$key] = self::upload(array_combine($parts, array_map($one, $parts)));
        }

        return $files;
    }
}
