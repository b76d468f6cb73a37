<?php

declare(strict_types=1);

namespace Samovar\Runtime\Tests;

/** A server's response. */
final class Answer
{
    /** @param array<string, list<string>> $headers by name in lower case */
    private function __construct(public int $status, public array $headers, public string $body)
    {
    }

    /** @param list<string> $lines */
    public static function of(array $lines, string $body): self
    {
        $headers = [];
        foreach (\array_slice($lines, 1) as $line) {
            [$name, $value] = explode(':', $line, 2);
            $headers[strtolower($name)][] = trim($value);
        }

        return new self((int) explode(' ', $lines[0])[1], $headers, $body);
    }

    /** @return array<string, mixed> */
    public function json(): array
    {
        return json_decode($this->body, true, flags: JSON_THROW_ON_ERROR);
    }
}
