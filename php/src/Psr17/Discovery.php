<?php

declare(strict_types=1);

namespace Samovar\Runtime\Psr17;

use Psr\Http\Message\RequestFactoryInterface;
use Psr\Http\Message\ResponseFactoryInterface;
use Psr\Http\Message\ServerRequestFactoryInterface;
use Psr\Http\Message\StreamFactoryInterface;
use Psr\Http\Message\UploadedFileFactoryInterface;
use Psr\Http\Message\UriFactoryInterface;

/**
 * Finds the PSR-17 factories that an application has installed, so that a handler's responses use
 * the same library as its other code. This package has no response classes.
 */
final class Discovery
{
    private const INTERFACES = [
        RequestFactoryInterface::class => 'Request',
        ResponseFactoryInterface::class => 'Response',
        ServerRequestFactoryInterface::class => 'ServerRequest',
        StreamFactoryInterface::class => 'Stream',
        UploadedFileFactoryInterface::class => 'UploadedFile',
        UriFactoryInterface::class => 'Uri',
    ];
    /** Searched in this order. %s is replaced by the type to create. */
    private const CLASSES = [
        'Nyholm\Psr7\Factory\Psr17Factory',
        'GuzzleHttp\Psr7\HttpFactory',
        'Laminas\Diactoros\%sFactory',
        'Slim\Psr7\Factory\%sFactory',
        'HttpSoft\Message\%sFactory',
    ];

    /**
     * @template T of object
     *
     * @param class-string<T> $interface one of PSR-17
     *
     * @return T
     *
     * @throws \InvalidArgumentException when $interface is not part of PSR-17
     * @throws \RuntimeException when no installed library implements it
     */
    public static function find(string $interface): object
    {
        $made = self::INTERFACES[$interface]
            ?? throw new \InvalidArgumentException("`$interface` is not an interface of PSR-17");
        foreach (self::CLASSES as $class) {
            $class = sprintf($class, $made);
            if (is_a($class, $interface, true)) {
                return new $class();
            }
        }

        throw new \RuntimeException(
            "no installed library implements `$interface`\nhint: run composer require nyholm/psr7",
        );
    }

    /** Returns whether find() supports $interface. */
    public static function knows(string $interface): bool
    {
        return isset(self::INTERFACES[$interface]);
    }
}
