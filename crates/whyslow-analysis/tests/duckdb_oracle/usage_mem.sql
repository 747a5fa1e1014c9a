-- pages by {keys}; counted by the second, so a window is rounded out
SELECT {keys}, sum(allocated)::BIGINT AS allocated_pages, sum(freed)::BIGINT AS freed_pages,
    (sum(allocated) - sum(freed))::BIGINT AS kept_pages
FROM page_count
WHERE getvariable('win_begin') IS NULL
    OR (ts >= getvariable('win_begin') // 1000000000 * 1000000000 AND ts < getvariable('win_end'))
GROUP BY ALL
ORDER BY allocated_pages DESC, freed_pages DESC, {order};
