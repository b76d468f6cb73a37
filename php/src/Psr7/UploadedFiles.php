<?php

declare(strict_types=1);

namespace Samovar\Runtime\Psr7;

/**
 * Converts $_FILES, which has one tree per property, to one tree of uploads.
 *
 * @internal
 */
final class UploadedFiles
{
    /**
     * @param array<array-key, mixed> $files as $_FILES
     *
     * @return array<array-key, UploadedFile|array<array-key, mixed>>
     */
    public static function tree(array $files): array
    {
        return array_map(self::node(...), $files);
    }

    /**
     * @param array<string, mixed> $columns
     *
     * @return UploadedFile|array<array-key, mixed>
     */
    private static function node(array $columns): UploadedFile|array
    {
        if (!\is_array($columns['tmp_name'])) {
            return UploadedFile::received(
                $columns['tmp_name'],
                (int) $columns['size'],
                (int) $columns['error'],
                $columns['name'] ?? null,
                $columns['type'] ?? null,
            );
        }
        $nodes = [];
        foreach (array_keys($columns['tmp_name']) as $key) {
            $nodes[$key] = self::node(array_map(
                static fn (mixed $column): mixed => \is_array($column) ? $column[$key] ?? null : null,
                $columns,
            ));
        }

        return $nodes;
    }
}
