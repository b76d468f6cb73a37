<?php

declare(strict_types=1);

namespace Samovar\Runtime\Psr7;

use Psr\Http\Message\UriInterface;

/** A PSR-7 URI. Immutable. */
final class Uri implements UriInterface
{
    /** RFC 3986, appendix B. */
    private const PARTS = '~^(?:([^:/?#]+):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?$~Ds';
    private const AUTHORITY = '~^(?:(?<user>[^:@]*)(?::(?<password>[^@]*))?@)?'
        . '(?<host>\[[0-9a-f:.]+\]|\[v[0-9a-f]+\.[^\]]+\]|[^:\[\]@]*)(?::(?<port>\d*))?$~Di';
    private const PORTS = ['http' => 80, 'https' => 443];
    private const PORT_MAX = 65535;
    /**
     * Characters allowed without encoding, in addition to unreserved characters and sub-delimiters.
     */
    private const IN_PATH = '/:@';
    private const IN_QUERY = '/:@?';

    private string $scheme = '';
    private string $user = '';
    private string $host = '';
    private ?int $port = null;
    private string $path = '';
    private string $query = '';
    private string $fragment = '';

    private function __construct()
    {
    }

    /** @throws \InvalidArgumentException when $text is not a URI */
    public static function parse(string $text): self
    {
        if (preg_match(self::PARTS, $text, $parts, PREG_UNMATCHED_AS_NULL) !== 1) {
            throw self::refused($text);
        }
        [, $scheme, $authority, $path, $query, $fragment] = $parts;
        $uri = new self();
        $uri->scheme = self::scheme($scheme ?? '');
        $namesHost = $authority !== null && $uri->setAuthority($authority);
        // "http:///path" has no host, and the first segment of "a:b/c" would be read as a scheme.
        $needsHost = isset(self::PORTS[$uri->scheme]) && $authority !== null;
        $colonFirst = $scheme === null && $authority === null && str_contains(explode('/', $path, 2)[0], ':');
        if (($needsHost && !$namesHost) || $colonFirst) {
            throw self::refused($text);
        }
        $uri->path = self::encoded($path, self::IN_PATH);
        $uri->query = self::encoded($query ?? '', self::IN_QUERY);
        $uri->fragment = self::encoded($fragment ?? '', self::IN_QUERY);

        return $uri;
    }

    /**
     * Creates the URI of a request that a server has parsed. A Host header without a host name is
     * ignored.
     *
     * @internal
     */
    public static function received(string $scheme, string $hostAndPort, string $path, string $query): self
    {
        $uri = new self();
        $uri->scheme = $scheme;
        try {
            $uri->setAuthority($hostAndPort);
        } catch (\InvalidArgumentException) {
            $uri->host = '';
        }
        // The "*" of OPTIONS is a target, not a path.
        $uri->path = $path === '*' ? '' : self::encoded($path, self::IN_PATH);
        $uri->query = self::encoded($query, self::IN_QUERY);

        return $uri;
    }

    /** Returns the value of a Host header for this URI. The scheme's default port is omitted. */
    public static function hostHeader(UriInterface $uri): string
    {
        $port = $uri->getPort();

        return $uri->getHost() === '' || $port === null ? $uri->getHost() : "{$uri->getHost()}:$port";
    }

    public function getScheme(): string
    {
        return $this->scheme;
    }

    public function getAuthority(): string
    {
        if ($this->host === '') {
            return '';
        }
        $port = $this->getPort();

        return ($this->user === '' ? '' : "$this->user@") . $this->host . ($port === null ? '' : ":$port");
    }

    public function getUserInfo(): string
    {
        return $this->user;
    }

    public function getHost(): string
    {
        return $this->host;
    }

    /** Returns null for the scheme's default port. */
    public function getPort(): ?int
    {
        return $this->port === (self::PORTS[$this->scheme] ?? null) ? null : $this->port;
    }

    /**
     * Returns the path with at most one leading "/". A path that starts with "//" would be read as
     * a host when used alone.
     */
    public function getPath(): string
    {
        return str_starts_with($this->path, '//') ? '/' . ltrim($this->path, '/') : $this->path;
    }

    public function getQuery(): string
    {
        return $this->query;
    }

    public function getFragment(): string
    {
        return $this->fragment;
    }

    /**
     * @param string $scheme
     *
     * @throws \InvalidArgumentException
     */
    public function withScheme($scheme): static
    {
        $uri = clone $this;
        $uri->scheme = self::scheme(self::text($scheme, 'scheme'));

        return $uri;
    }

    /**
     * @param string $user
     * @param string|null $password
     *
     * @throws \InvalidArgumentException
     */
    public function withUserInfo($user, $password = null): static
    {
        $uri = clone $this;
        $uri->user = self::userInfo(
            self::text($user, 'user'),
            $password === null ? null : self::text($password, 'password'),
        );

        return $uri;
    }

    /**
     * @param string $host
     *
     * @throws \InvalidArgumentException
     */
    public function withHost($host): static
    {
        $uri = clone $this;
        $uri->host = self::host(self::text($host, 'host'));

        return $uri;
    }

    /**
     * @param int|null $port
     *
     * @throws \InvalidArgumentException
     */
    public function withPort($port): static
    {
        $uri = clone $this;
        $uri->port = $port === null ? null : self::port($port);

        return $uri;
    }

    /**
     * @param string $path
     *
     * @throws \InvalidArgumentException
     */
    public function withPath($path): static
    {
        $uri = clone $this;
        $uri->path = self::encoded(self::text($path, 'path'), self::IN_PATH);

        return $uri;
    }

    /**
     * @param string $query
     *
     * @throws \InvalidArgumentException
     */
    public function withQuery($query): static
    {
        $uri = clone $this;
        $uri->query = self::encoded(self::text($query, 'query'), self::IN_QUERY);

        return $uri;
    }

    /**
     * @param string $fragment
     *
     * @throws \InvalidArgumentException
     */
    public function withFragment($fragment): static
    {
        $uri = clone $this;
        $uri->fragment = self::encoded(self::text($fragment, 'fragment'), self::IN_QUERY);

        return $uri;
    }

    public function __toString(): string
    {
        $authority = $this->getAuthority();
        $path = $this->getPath();
        if ($authority !== '') {
            $path = $this->path !== '' && $this->path[0] !== '/' ? "/$this->path" : $this->path;
        }

        return ($this->scheme === '' ? '' : "$this->scheme:")
            . ($authority !== '' || ($this->scheme === 'file' && str_starts_with($path, '/')) ? "//$authority" : '')
            . $path
            . ($this->query === '' ? '' : "?$this->query")
            . ($this->fragment === '' ? '' : "#$this->fragment");
    }

    /**
     * @return bool whether it names a host
     *
     * @throws \InvalidArgumentException
     */
    private function setAuthority(string $authority): bool
    {
        if (preg_match(self::AUTHORITY, $authority, $parts, PREG_UNMATCHED_AS_NULL) !== 1) {
            throw self::refused($authority);
        }
        $this->user = self::userInfo($parts['user'] ?? '', $parts['password']);
        $this->host = self::host($parts['host']);
        $this->port = ($parts['port'] ?? '') === '' ? null : self::port((int) $parts['port']);

        return $this->host !== '';
    }

    private static function scheme(string $scheme): string
    {
        if ($scheme !== '' && preg_match('/^[a-z][a-z0-9+.-]*$/Di', $scheme) !== 1) {
            throw self::refused($scheme);
        }

        return strtolower($scheme);
    }

    private static function userInfo(string $user, ?string $password): string
    {
        $user = self::encoded($user, '');

        return $password === null || $password === '' ? $user : $user . ':' . self::encoded($password, '');
    }

    private static function host(string $host): string
    {
        if (preg_match('~[\s/?#@\\\\\x00-\x1F\x7F]~', $host) === 1) {
            throw self::refused($host);
        }

        return strtolower($host);
    }

    private static function port(mixed $port): int
    {
        if (!\is_int($port) && !(\is_string($port) && ctype_digit($port))) {
            throw new \InvalidArgumentException('A port must be a number, ' . get_debug_type($port) . ' given');
        }
        if ((int) $port < 0 || (int) $port > self::PORT_MAX) {
            throw new \InvalidArgumentException("A port must be a number from 0 to 65535, $port given");
        }

        return (int) $port;
    }

    /** Percent-encodes characters that are not allowed, and does not encode twice. */
    private static function encoded(string $text, string $allowed): string
    {
        $pattern = '~(?:[^a-zA-Z0-9_.\-\~!$&\'()*+,;=%' . preg_quote($allowed, '~') . ']+|%(?![a-fA-F0-9]{2}))~';

        return preg_replace_callback($pattern, static fn (array $found): string => rawurlencode($found[0]), $text);
    }

    private static function text(mixed $value, string $part): string
    {
        if (!\is_string($value)) {
            throw new \InvalidArgumentException("A URI's $part must be a string, " . get_debug_type($value) . ' given');
        }

        return $value;
    }

    private static function refused(string $text): \InvalidArgumentException
    {
        return new \InvalidArgumentException('`' . addcslashes($text, "\0..\37\177") . '` is not a valid URI');
    }
}
