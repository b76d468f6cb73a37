<?php

/*
 * Plugin Name: Samovar
 * Description: Boots WordPress once for many visitors, and looks in each request whether the boot still holds.
 *
 * A must-use plugin: copy it to wp-content/mu-plugins/. Wherever Samovar has no checkpoint it does nothing.
 *
 * The checkpoint stands at the end of WordPress's boot. What the boot has read of the database is read again in each
 * request and compared: if anything has changed, the request runs as a whole script, and its worker boots anew. What
 * the boot has found out about a visitor, of whom there was none, is found out again.
 *
 * Other plugins and themes boot, too, and one that looks at the visitor while it boots (in plugins_loaded, init or
 * wp_loaded) would see nobody. So there is a checkpoint only where all of them are known to wait. In wp-config.php:
 *
 *     define('SAMOVAR_CHECKED', ['akismet/akismet.php', 'my-theme']);
 */

declare(strict_types=1);

namespace Samovar\WordPress;

// WordPress's own, which look at nobody while they boot.
const THEMES = ['twentytwentyone', 'twentytwentytwo', 'twentytwentythree', 'twentytwentyfour', 'twentytwentyfive'];

/** Options that say what is due and what is cached: nothing is built from them. */
const VOLATILE = '/^(cron|_transient_.*|_site_transient_.*)$/D';

/** What is sent by somebody whom WordPress treats otherwise from its first line on. */
const SPECIAL = [
    'customize_changeset_uuid', 'customize_theme', 'preview_id', 'wp_customize', 'wp_scrape_key', 'wp_theme_preview',
];

final class Boot
{
    /** @var array<string, string> by query: a digest of what it answered */
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
                echo '<div class="notice notice-warning"><p>Samovar: no checkpoint, for ', esc_html($obstacle),
                    '</p></div>';
            });
        } elseif (isset($_SERVER['REQUEST_METHOD'])) {
            // A visitor's, whom nobody may share: Samovar takes it as the wish to boot ahead.
            add_action('wp_loaded', static fn () => \Samovar\checkpoint(), \PHP_INT_MAX);
        } else {
            (new self())->watch();
        }
    }

    /** Pages are told apart by their template. Of a block theme that is one file for all, and WordPress knows which it shows. */
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

    /** Which kind of page it is, where WordPress (before 6.3) does not say which template of a block theme it shows. */
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

    /** Why there can be no checkpoint. */
    private static function obstacle(): ?string
    {
        if (is_multisite()) {
            return 'this is a network of sites';
        }
        if (wp_using_ext_object_cache() || WP_CACHE) {
            return 'object-cache.php or advanced-cache.php looks at the visitor first';
        }
        $others = array_diff(array_map('basename', wp_get_mu_plugins()), [basename(__FILE__)]);
        $themes = [get_option('template'), get_option('stylesheet')];
        $checked = \defined('SAMOVAR_CHECKED') ? (array) \constant('SAMOVAR_CHECKED') : [];
        $booted = array_merge((array) get_option('active_plugins', []), $others, $themes);
        $unknown = array_diff($booted, $checked, THEMES);

        return $unknown === [] ? null : 'SAMOVAR_CHECKED does not name ' . implode(', ', $unknown);
    }

    private function watch(): void
    {
        // What is filed by month, or is of today, is worked out once a day.
        $this->day = gmdate('Y-m-d');
        add_filter('query', function ($query) {
            // The one before has its answer by now.
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
            error_log('Samovar: no checkpoint: what the boot has read has other values already');
        }
    }

    /** First in each request; false: the boot does not hold for it. */
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
        // Who it is, and what REST makes of their cookie; kses then sees their rights.
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

    /** The database answers as it has answered the boot. */
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

    /** Whether it is a question, other than that for all options. */
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
            // A site in recovery loads other plugins.
            if (str_starts_with((string) $name, 'wordpress_rec_')) {
                return true;
            }
        }

        return false;
    }

    /** As vars.php, which declares functions and cannot be included twice. */
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

// Another version of the code is another boot: updates are made under /wp-admin/.
add_action('upgrader_process_complete', static fn () => update_option('samovar_code', (string) hrtime(true), true));
Boot::begin();
