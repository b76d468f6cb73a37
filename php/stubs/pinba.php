<?php

/**
 * IDE stubs for the functions of the pinba extension that Samovar provides, so that applications
 * instrumented for pinba run unchanged.
 *
 * Samovar does not define them where that extension is loaded. docs/guide/observability.md lists
 * the differences. check.php in this folder compares the stubs with a running server.
 */

declare(strict_types=1);

namespace {
    const PINBA_FLUSH_ONLY_STOPPED_TIMERS = 1;
    const PINBA_FLUSH_RESET_DATA = 2;
    const PINBA_ONLY_STOPPED_TIMERS = 1;
    const PINBA_ONLY_RUNNING_TIMERS = 4;
    const PINBA_AUTO_FLUSH = 8;

    /**
     * Creates a timer and starts it. It is stopped at the end of the request at the latest.
     *
     * @param non-empty-array<string, scalar|null> $tags measurements are summed by these
     * @param array<mixed>|null $data any data of the application
     *
     * @return resource|false
     */
    function pinba_timer_start(array $tags, ?array $data = null, int $hit_count = 1)
    {
    }

    /**
     * Creates a stopped timer with $value seconds.
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
     * Stops a timer. Returns false when it is already stopped.
     *
     * @param resource $timer
     */
    function pinba_timer_stop($timer): bool
    {
    }

    /**
     * Deletes a timer, which is then not counted.
     *
     * @param resource $timer
     */
    function pinba_timer_delete($timer): bool
    {
    }

    /**
     * Adds entries to a timer's data. Existing entries of the same name are replaced.
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
     * @param array<mixed>|null $data null removes the data
     */
    function pinba_timer_data_replace($timer, ?array $data): bool
    {
    }

    /**
     * Adds tags to a timer. Existing tags of the same name are replaced.
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
     * Returns a timer's measurements in seconds, its tags and its data.
     *
     * @param resource $timer
     *
     * @return array{value: float, tags: array<string, string>, started: bool, data:
     * array<mixed>|null, ru_utime: float, ru_stime: float}
     */
    function pinba_timer_get_info($timer): array
    {
    }

    /** Stops all timers of the request. */
    function pinba_timers_stop(): bool
    {
    }

    /**
     * Returns all timers of the request, or only the stopped ones with PINBA_ONLY_STOPPED_TIMERS.
     *
     * @return list<resource>
     */
    function pinba_timers_get(int $flag = 0): array
    {
    }

    /**
     * Stops all timers, sums them up and removes them from the request. With
     * PINBA_FLUSH_ONLY_STOPPED_TIMERS, running timers continue. With PINBA_FLUSH_RESET_DATA, the
     * request's tags are also removed.
     *
     * @param string|null $custom_script_name the request's route, as for pinba_script_name_set()
     */
    function pinba_flush(?string $custom_script_name = null, int $flags = 0): bool
    {
    }

    /** Removes the request's timers and tags. */
    function pinba_reset(): void
    {
    }

    /** Sets the request's route name. */
    function pinba_script_name_set(string $custom_script_name): bool
    {
    }

    /** Sets the host name that pinba_get_info() and pinba_get_data() report. */
    function pinba_hostname_set(string $custom_hostname): bool
    {
    }

    /** Sets the server name that pinba_get_info() and pinba_get_data() report. */
    function pinba_server_name_set(string $custom_server_name): bool
    {
    }

    /** Sets the schema that pinba_get_info() and pinba_get_data() report. */
    function pinba_schema_set(string $custom_schema): bool
    {
    }

    /** Sets the request time in seconds that pinba_get_info() and pinba_get_data() report. */
    function pinba_request_time_set(float $request_time): bool
    {
    }

    /** Sets a tag of the request. */
    function pinba_tag_set(string $tag, string $value): bool
    {
    }

    /** Returns a tag of the request, or false when there is none of that name. */
    function pinba_tag_get(string $tag): string|bool
    {
    }

    /** Removes a tag of the request. Returns false when there is none of that name. */
    function pinba_tag_delete(string $tag): bool
    {
    }

    /**
     * Returns the request's tags.
     *
     * @return array<string, string>
     */
    function pinba_tags_get(): array
    {
    }

    /**
     * Returns the request's names, resource usage, tags and timers.
     *
     * @return array<string, mixed>
     */
    function pinba_get_info(): array
    {
    }

    /** Returns the same data as a Pinba packet in Protocol Buffers format. */
    function pinba_get_data(int $flags = 0): string
    {
    }
}
