<?php

/*
 * Plugin Name: Samovar
 * Description: Boots WordPress once for many visitors. Each request checks that the boot is valid.
 *
 * A must-use plugin: copy it to wp-content/mu-plugins/. It does nothing where Samovar has no
 * checkpoint.
 *
 * The checkpoint is at the end of WordPress's boot. Each request reads the boot's database queries
 * again and compares the results. If a result has changed, the request runs the whole script, and
 * its worker boots again. Data about the visitor is computed again in each request, because the
 * boot has no visitor.
 *
 * Other plugins and themes boot too. A plugin that looks at the visitor while it boots (in
 * plugins_loaded, init or wp_loaded) would find none. So there is a checkpoint only if all active
 * plugins and themes are known not to do so. List yours in wp-config.php after you checked them:
 *
 *     define('SAMOVAR_CHECKED', ['akismet/akismet.php', 'my-theme']);
 */

declare(strict_types=1);

namespace Samovar\WordPress;

// WordPress's own themes, which do not look at the visitor while they boot.
const THEMES = ['twentytwentyone', 'twentytwentytwo', 'twentytwentythree', 'twentytwentyfour', 'twentytwentyfive'];

/** Options for scheduled tasks and cached data. The boot builds nothing from them. */
const VOLATILE = '/^(cron|_transient_.*|_site_transient_.*)$/D';

/** Parameters of requests that WordPress handles differently from its first line on. */
const SPECIAL = [
    'customize_changeset_uuid', 'customize_theme', 'preview_id', 'wp_customize', 'wp_scrape_key', 'wp_theme_preview',
];

final class Boot
{
    /** @var array<string, string> query => digest of its result */
    private array $answers = [];
    private string $options = '';
    private string $day = '';
    private bool $records = true;

    public static function begin(): void
    {
        if (!\function_exists('Samovar\checkpoint')) {
            return;
        }
        add_filter('template_include', self::nameRoute(...), \PHP_INT_MAX);
        $obstacle = self::obstacle();
        if ($obstacle !== null) {
            add_action('admin_notices', static function () use ($obstacle): void {
                echo '<div class="notice notice-warning"><p>Samovar: no checkpoint: ', esc_html($obstacle),
                    '</p></div>';
            });
        } elseif (isset($_SERVER['REQUEST_METHOD'])) {
            // A request of a visitor, whose state must not be shared. Samovar takes the call as a
            // request to boot in advance.
            add_action('wp_loaded', static fn () => \Samovar\checkpoint(), \PHP_INT_MAX);
        } else {
            (new self())->watch();
        }
    }

    /**
     * Uses the page's template as the route name. A block theme has one file for all pages, so its
     * template comes from WordPress.
     */
    private static function nameRoute(mixed $file): mixed
    {
        $shown = $GLOBALS['_wp_current_template_id'] ?? null;
        if (\is_string($shown) && $shown !== '') {
            \Samovar\route("template $shown");
        } elseif (\is_string($file) && basename($file) === 'template-canvas.php') {
            \Samovar\route('template ' . self::shown());
        } elseif (\is_string($file) && $file !== '') {
            \Samovar\route('template ' . basename($file));
        }

        return $file;
    }

    /**
     * Returns the kind of page. For WordPress before 6.3, which does not report the current
     * template of a block theme.
     */
    private static function shown(): string
    {
        return match (true) {
            is_404() => '404',
            is_search() => 'search',
            is_front_page() => 'front-page',
            is_home() => 'home',
            is_page() => 'page',
            is_singular() => 'single-' . (string) get_post_type(),
            is_archive() => 'archive',
            default => 'index',
        };
    }

    /** Returns the reason why there can be no checkpoint, or null. */
    private static function obstacle(): ?string
    {
        if (is_multisite()) {
            return 'multisite is not supported';
        }
        if (wp_using_ext_object_cache() || WP_CACHE) {
            return 'object-cache.php or advanced-cache.php depends on the visitor';
        }
        $others = array_diff(array_map('basename', wp_get_mu_plugins()), [basename(__FILE__)]);
        $themes = [get_option('template'), get_option('stylesheet')];
        $checked = \defined('SAMOVAR_CHECKED') ? (array) \constant('SAMOVAR_CHECKED') : [];
        $booted = array_merge((array) get_option('active_plugins', []), $others, $themes);
        $unknown = array_diff($booted, $checked, THEMES);

        return $unknown === [] ? null : 'missing in SAMOVAR_CHECKED: ' . implode(', ', $unknown);
    }

    private function watch(): void
    {
        // Monthly archives and values for today are computed once a day.
        $this->day = gmdate('Y-m-d');
        add_filter('query', function ($query) {
            // The previous query has its result now.
            $this->record();

            return $query;
        }, \PHP_INT_MIN);
        add_action('wp_loaded', $this->end(...), \PHP_INT_MAX);
    }

    private function end(): void
    {
        $this->record();
        $this->records = false;
        $this->options = self::fingerprint(wp_load_alloptions());
        wp_cache_flush();
        if ($this->holds()) {
            \Samovar\checkpoint($this->resume(...));
        } else {
            error_log('Samovar: no checkpoint: values read by the boot have already changed');
        }
    }

    /** Runs first in each request. Returns false when the boot is not valid for it. */
    private function resume(): bool
    {
        wp_maintenance();
        timer_start();
        wp_cache_flush();
        if ($this->day !== gmdate('Y-m-d') || self::isSpecial() || !$this->holds()) {
            return false;
        }
        wp_fix_server_vars();
        self::tellBrowser($_SERVER['HTTP_USER_AGENT'] ?? '');
        wp_magic_quotes();
        sanitize_comment_cookies();
        foreach (['current_user', 'wp_rest_auth_cookie', 'wp_rest_application_password_status'] as $name) {
            $GLOBALS[$name] = null;
        }
        // Determines the user, and the REST state of the user's cookie. kses then uses the user's
        // rights.
        $GLOBALS['wp']->init();
        if (has_action('init', 'wp_cron')) {
            wp_cron();
        }

        return determine_locale() === get_locale();
    }

    private function record(): void
    {
        global $wpdb;
        if ($this->records && \is_string($wpdb->last_query) && self::asks($wpdb->last_query)) {
            $this->answers[$wpdb->last_query] = self::digest($wpdb->last_result);
        }
    }

    /** Returns whether the database still returns the same results as during the boot. */
    private function holds(): bool
    {
        global $wpdb;
        if (self::fingerprint(wp_load_alloptions()) !== $this->options) {
            return false;
        }
        foreach ($this->answers as $query => $answer) {
            if (self::digest($wpdb->get_results($query)) !== $answer) {
                return false;
            }
        }

        return true;
    }

    /** Returns whether $query reads data, except the query for all options. */
    private static function asks(string $query): bool
    {
        global $wpdb;

        return preg_match('/^\s*(SELECT|SHOW)\b/i', $query) === 1
            && preg_match("/FROM $wpdb->options( WHERE autoload\\b.*)?\$/D", $query) !== 1
            && !str_contains($query, '@@');
    }

    /** @param mixed $rows */
    private static function digest($rows): string
    {
        return md5(serialize(array_map(static fn ($row) => array_map('strval', (array) $row), (array) $rows)));
    }

    /** @param array<string, string> $options */
    private static function fingerprint(array $options): string
    {
        foreach (array_keys($options) as $name) {
            if (preg_match(VOLATILE, (string) $name)) {
                unset($options[$name]);
            }
        }
        ksort($options);

        return md5(serialize(array_map('strval', $options)));
    }

    private static function isSpecial(): bool
    {
        foreach (SPECIAL as $name) {
            if (isset($_GET[$name]) || isset($_POST[$name])) {
                return true;
            }
        }
        foreach (array_keys($_COOKIE) as $name) {
            // A site in recovery mode loads other plugins.
            if (str_starts_with((string) $name, 'wordpress_rec_')) {
                return true;
            }
        }

        return false;
    }

    /** Does the same as vars.php, which declares functions and cannot be included twice. */
    private static function tellBrowser(string $agent): void
    {
        $has = static fn (string $part): bool => stripos($agent, $part) !== false;
        $explorer = str_contains($agent, 'MSIE') || str_contains($agent, 'Trident');
        $found = match (true) {
            str_contains($agent, 'Lynx') => 'is_lynx',
            str_contains($agent, 'Edg') => 'is_edge',
            $has('chrome') => $has('chromeframe') ? 'is_winIE' : 'is_chrome',
            $has('safari') => 'is_safari',
            $explorer && str_contains($agent, 'Win') => 'is_winIE',
            str_contains($agent, 'MSIE') && str_contains($agent, 'Mac') => 'is_macIE',
            str_contains($agent, 'Gecko') => 'is_gecko',
            str_contains($agent, 'Opera') => 'is_opera',
            str_contains($agent, 'Nav') && str_contains($agent, 'Mozilla/4.') => 'is_NS4',
            default => '',
        };
        $names = [
            'is_lynx', 'is_edge', 'is_chrome', 'is_safari', 'is_winIE', 'is_macIE', 'is_gecko', 'is_opera', 'is_NS4',
        ];
        foreach ($names as $name) {
            $GLOBALS[$name] = $name === $found;
        }
        $GLOBALS['is_iphone'] = $found === 'is_safari' && $has('mobile');
        $GLOBALS['is_IE'] = $found === 'is_winIE' || $found === 'is_macIE';
    }
}

// A code update requires a new boot. Updates are installed under /wp-admin/.
add_action('upgrader_process_complete', static fn () => update_option('samovar_code', (string) hrtime(true), true));
Boot::begin();
