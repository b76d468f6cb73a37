<?php

/**
 * IDE stubs: what Samovar has of the pinba extension's functions, so that applications instrumented for it run unchanged.
 *
 * Not defined where that extension is loaded. docs/guide/observability.md says what differs. check.php, beside this file,
 * compares it with a running server.
 */

declare(strict_types=1);

namespace {
    const PINBA_FLUSH_ONLY_STOPPED_TIMERS = 1;
    const PINBA_FLUSH_RESET_DATA = 2;
    const PINBA_ONLY_STOPPED_TIMERS = 1;
    const PINBA_ONLY_RUNNING_TIMERS = 4;
    const PINBA_AUTO_FLUSH = 8;

    /**
     * Makes a timer and starts it. It is stopped at the request's end at the latest.
     *
     * @param non-empty-array<string, scalar|null> $tags what it is added up by
     * @param array<mixed>|null $data of the application's own
     *
     * @return resource|false
     */
    function pinba_timer_start(array $tags, ?array $data = null, int $hit_count = 1)
    {
    }

    /**
     * Makes a timer that has measured $value seconds.
     *
     * @param non-empty-array<string, scalar|null> $tags
     * @param array<mixed>|null $data
     *
     * @return resource|false
     */
    function pinba_timer_add(array $tags, float $value, ?array $data = null, int $hit_count = 1)
    {
    }

    /**
     * Stops a timer; false if it is stopped already.
     *
     * @param resource $timer
     */
    function pinba_timer_stop($timer): bool
    {
    }

    /**
     * Takes a timer away: it counts nowhere.
     *
     * @param resource $timer
     */
    function pinba_timer_delete($timer): bool
    {
    }

    /**
     * Adds to a timer's data; a name that is there is replaced.
     *
     * @param resource $timer
     * @param array<mixed> $data
     */
    function pinba_timer_data_merge($timer, array $data): bool
    {
    }

    /**
     * Replaces a timer's data.
     *
     * @param resource $timer
     * @param array<mixed>|null $data null: none
     */
    function pinba_timer_data_replace($timer, ?array $data): bool
    {
    }

    /**
     * Adds to a timer's tags; a name that is there is replaced.
     *
     * @param resource $timer
     * @param array<string, scalar|null> $tags
     */
    function pinba_timer_tags_merge($timer, array $tags): bool
    {
    }

    /**
     * Replaces a timer's tags.
     *
     * @param resource $timer
     * @param non-empty-array<string, scalar|null> $tags
     */
    function pinba_timer_tags_replace($timer, array $tags): bool
    {
    }

    /**
     * What a timer has measured (seconds), its tags and data.
     *
     * @param resource $timer
     *
     * @return array{value: float, tags: array<string, string>, started: bool, data: array<mixed>|null, ru_utime: float,
     *     ru_stime: float}
     */
    function pinba_timer_get_info($timer): array
    {
    }

    /** Stops all timers of the request. */
    function pinba_timers_stop(): bool
    {
    }

    /**
     * All timers of the request, or with PINBA_ONLY_STOPPED_TIMERS those that are stopped.
     *
     * @return list<resource>
     */
    function pinba_timers_get(int $flag = 0): array
    {
    }

    /**
     * Stops all timers, and adds them up: they are not seen any more. With PINBA_FLUSH_ONLY_STOPPED_TIMERS those that run
     * go on; with PINBA_FLUSH_RESET_DATA the request's tags go too.
     *
     * @param string|null $custom_script_name the request's route, as pinba_script_name_set() says it
     */
    function pinba_flush(?string $custom_script_name = null, int $flags = 0): bool
    {
    }

    /** Forgets the request's timers and tags. */
    function pinba_reset(): void
    {
    }

    /** Names the request's route. */
    function pinba_script_name_set(string $custom_script_name): bool
    {
    }

    /** Names the host, for pinba_get_info() and pinba_get_data(). */
    function pinba_hostname_set(string $custom_hostname): bool
    {
    }

    /** Names the site, for pinba_get_info() and pinba_get_data(). */
    function pinba_server_name_set(string $custom_server_name): bool
    {
    }

    /** Names the schema, for pinba_get_info() and pinba_get_data(). */
    function pinba_schema_set(string $custom_schema): bool
    {
    }

    /** Says how many seconds the request took, for pinba_get_info() and pinba_get_data(). */
    function pinba_request_time_set(float $request_time): bool
    {
    }

    /** Sets a tag of the request. */
    function pinba_tag_set(string $tag, string $value): bool
    {
    }

    /** A tag of the request; false: there is none. */
    function pinba_tag_get(string $tag): string|bool
    {
    }

    /** Takes a tag of the request away; false: there is none. */
    function pinba_tag_delete(string $tag): bool
    {
    }

    /**
     * The request's tags.
     *
     * @return array<string, string>
     */
    function pinba_tags_get(): array
    {
    }

    /**
     * What is known of the request.
     *
     * @return array<string, mixed>
     */
    function pinba_get_info(): array
    {
    }

    /** The same as a packet of Pinba's: Protocol Buffers. */
    function pinba_get_data(int $flags = 0): string
    {
    }
}
