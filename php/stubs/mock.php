<?php

/**
 * IDE stub for the test doubles of `samovar test --mocks`. samovar.php explains how to use the
 * stubs.
 */

declare(strict_types=1);

namespace Samovar;

/**
 * Doubles of functions, methods, constants and `new`, for tests. The class exists only under
 * `samovar test`, and works only with --mocks.
 *
 * The doubles that a test adds are removed after the test. A double takes the arguments of the code
 * that it replaces. It is called for each call: from PHP code, from callbacks, and by reflection.
 */
final class Mock
{
    /**
     * Replaces a function, PHP's own or one of the project. Calls by the test framework and by
     * Composer's autoloader still reach the function.
     *
     * @throws \Error when there is no such function, or when it cannot be replaced
     */
    public static function function(string $name, callable $double): void
    {
    }

    /**
     * Replaces a method: also a private, static, final, magic or inherited one, and methods of
     * PHP's own classes. A closure runs in the scope of the method: $this, self and static are
     * those of the call, and private members are accessible.
     *
     * With a class that inherits the method, only calls on this class and its descendants are
     * replaced; with a trait, the calls of all classes that use it.
     *
     * @throws \Error when there is no such class or method, or when it cannot be replaced
     */
    public static function method(string $class, string $method, callable $double): void
    {
    }

    /**
     * Gives a constant another value, or defines one: `NAME`, `App\NAME` or `Foo::NAME`.
     *
     * @throws \Error when it is no constant, or a case of an enum
     */
    public static function constant(string $name, mixed $value): void
    {
    }

    /**
     * Replaces `new` of this class, not of its descendants. The double gets the arguments of the
     * constructor and returns an object.
     *
     * @throws \Error when there is no such class
     */
    public static function new(string $class, callable $double): void
    {
    }

    /**
     * Calls the code that the running double replaces, with these arguments, on the same object. In
     * a double of `new` it creates the object.
     *
     * @throws \Error when no double runs
     */
    public static function original(mixed ...$arguments): mixed
    {
    }

    /**
     * Calls a function or method without its double: 'time', 'Foo::bar', [$object, 'bar'].
     * Arguments by reference are references in the array.
     *
     * @param string|array<mixed> $target
     * @param array<mixed> $arguments
     *
     * @throws \Error when there is no such function or method
     */
    public static function callOriginal(string|array $target, array $arguments = []): mixed
    {
    }

    /**
     * Returns the arguments of each call of a double: 'time', 'Foo::bar' or 'new Foo'.
     *
     * @return list<array<mixed>>
     *
     * @throws \Error when there is no double, or when it was called more than 10,000 times
     */
    public static function calls(string $target): array
    {
    }

    /** Removes the doubles with this name: 'time', 'Foo::bar', 'new Foo', 'NAME', 'Foo::NAME'. */
    public static function restore(string $target): void
    {
    }

    /** Removes all doubles, also those that were added before the test. */
    public static function restoreAll(): void
    {
    }
}
