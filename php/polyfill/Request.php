<?php

declare(strict_types=1);

namespace Samovar;

/**
 * The request that a handler processes, built from the superglobals of a SAPI other than Samovar.
 *
 * Its public methods, except fromGlobals() and of(), are those of php/stubs/samovar.php.
 */
final class Request
{
    /** @var array<string, string>|null built on first use */
    private ?array $headers = null;

    private ?string $id = null;

    /** @var array<array-key, mixed> */
    private array $attributes = [];

    /**
     * @param array<string, mixed> $server
     * @param array<array-key, mixed> $query
     * @param array<array-key, mixed> $form
     * @param array<array-key, mixed> $cookies
     * @param array<array-key, mixed> $files
     * @param \Closure(): resource $body opens the body
     */
    private function __construct(
        private array $server,
        private array $query,
        private array $form,
        private array $cookies,
        private array $files,
        private \Closure $body,
    ) {
    }

    private function __clone()
    {
    }

    public function __serialize(): array
    {
        throw new \Exception("Serialization of 'Samovar\\Request' is not allowed");
    }

    /** @internal the current request, for the polyfilled serve() */
    public static function fromGlobals(): self
    {
        return new self($_SERVER, $_GET, $_POST, $_COOKIE, $_FILES, static fn () => fopen('php://input', 'rb'));
    }

    /**
     * @internal a synthetic request, for tests
     *
     * @param array<string, mixed> $server
     * @param array<array-key, mixed> $form
     * @param array<array-key, mixed> $files
     */
    public static function of(array $server = [], array $form = [], array $files = [], string $body = ''): self
    {
        $server += ['REQUEST_METHOD' => 'GET', 'REQUEST_URI' => '/', 'SERVER_PROTOCOL' => 'HTTP/1.1'];
        parse_str((string) parse_url($server['REQUEST_URI'], PHP_URL_QUERY), $query);
        parse_str(strtr($server['HTTP_COOKIE'] ?? '', ['; ' => '&', ';' => '&']), $cookies);

        return new self($server, $query, $form, $cookies, $files, static function () use ($body) {
            $stream = fopen('php://memory', 'w+b');
            fwrite($stream, $body);
            rewind($stream);

            return $stream;
        });
    }

    public function method(): string
    {
        return $this->text('REQUEST_METHOD', 'GET');
    }

    public function uri(): string
    {
        return $this->text('REQUEST_URI', '/');
    }

    public function path(): string
    {
        // The target may be an absolute URI ("GET http://host/path"): clients use this form with a
        // proxy.
        $target = preg_replace('#^[a-z][a-z0-9+.-]*://[^/?]*#i', '', $this->uri());

        return explode('?', $target, 2)[0];
    }

    public function queryString(): string
    {
        return explode('?', $this->uri(), 2)[1] ?? '';
    }

    public function protocol(): string
    {
        return $this->text('SERVER_PROTOCOL', 'HTTP/1.1');
    }

    public function host(): string
    {
        $host = preg_replace('/:\d*$/', '', $this->text('HTTP_HOST', ''));

        return $host !== '' ? $host : $this->text('SERVER_NAME', '');
    }

    public function isSecure(): bool
    {
        return !\in_array(strtolower($this->text('HTTPS', '')), ['', 'off', '0'], true);
    }

    public function remoteAddress(): string
    {
        return $this->text('REMOTE_ADDR', '');
    }

    public function id(): string
    {
        return $this->id ??= $this->text('REQUEST_ID', '') ?: bin2hex(random_bytes(16));
    }

    /** @return ($default is null ? string|null : string) */
    public function header(string $name, ?string $default = null): ?string
    {
        return $this->headers()[strtolower($name)] ?? $default;
    }

    /** @return array<string, string> */
    public function headers(): array
    {
        if ($this->headers === null) {
            $this->headers = [];
            foreach ($this->server as $name => $value) {
                $name = (string) $name;
                $known = \in_array($name, ['CONTENT_TYPE', 'CONTENT_LENGTH'], true) && (string) $value !== '';
                if ($known || str_starts_with($name, 'HTTP_')) {
                    $name = $known ? $name : substr($name, \strlen('HTTP_'));
                    $this->headers[strtolower(strtr($name, '_', '-'))] = (string) $value;
                }
            }
        }

        return $this->headers;
    }

    /** @return array<array-key, string|array<array-key, mixed>> */
    public function query(): array
    {
        return $this->query;
    }

    /** @return array<array-key, string|array<array-key, mixed>> */
    public function form(): array
    {
        return $this->form;
    }

    /** @return array<array-key, string|array<array-key, mixed>> */
    public function cookies(): array
    {
        return $this->cookies;
    }

    /** @return array<array-key, array<string, mixed>> */
    public function files(): array
    {
        return $this->files;
    }

    public function body(): string
    {
        return (string) stream_get_contents($this->bodyStream());
    }

    /** @return resource */
    public function bodyStream()
    {
        return ($this->body)();
    }

    public function attribute(string $name, mixed $default = null): mixed
    {
        return $this->attributes[$name] ?? $default;
    }

    public function setAttribute(string $name, mixed $value): void
    {
        $this->attributes[$name] = $value;
    }

    /** @return array<array-key, mixed> */
    public function attributes(): array
    {
        return $this->attributes;
    }

    /** @return array<string, string> */
    public function server(): array
    {
        $server = array_filter(
            $this->server,
            static fn (mixed $value, int|string $name): bool => is_scalar($value)
                && !str_starts_with((string) $name, 'PHP_AUTH_')
                && !\in_array($name, ['REQUEST_TIME', 'REQUEST_TIME_FLOAT'], true),
            ARRAY_FILTER_USE_BOTH,
        );

        return array_map(strval(...), $server);
    }

    private function text(string $name, string $default): string
    {
        $value = $this->server[$name] ?? $default;

        return is_scalar($value) ? (string) $value : $default;
    }
}
